"""Cards of other machines: who serves them, what waits for them, what they did. See docs/adr/0025."""
