"""Workspaces: who works together, and what each of them may see and do there."""
