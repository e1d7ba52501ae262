"""What goes over the wire to a browser, and how it gets there."""
