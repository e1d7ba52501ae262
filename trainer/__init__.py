"""Making a policy better. Knows nothing of the web."""
