"""Families of C programs. Each module is one group; `registry` finds them all."""
