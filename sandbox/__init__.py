"""Judge one candidate for one task: compile, record, replay, verify, measure. Knows nothing of the web."""
