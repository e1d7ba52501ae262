"""Evaluations: a candidate that somebody gives, judged for a task, without an agent."""
