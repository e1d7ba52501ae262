"""Runs: one translation each, with its numbered events. What its turns came to is folded from those."""
