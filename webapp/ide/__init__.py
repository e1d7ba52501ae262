"""The page: a shell that loads what Vite built."""
