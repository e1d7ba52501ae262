"""The language models this server can ask: where they are, with which key, how, and what they cost."""
