"""One rewrite each: when it is legal, what it changes."""
