"""From a task to a good kernel in several turns. Knows nothing of the web, and never loads torch."""
