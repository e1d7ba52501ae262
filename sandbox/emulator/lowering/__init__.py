"""PTX to native code, one warp at a time. Light on imports: it runs as a short-lived process in the jail."""
