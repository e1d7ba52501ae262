"""The library: candidates that people have approved, by workspace, title and version."""
