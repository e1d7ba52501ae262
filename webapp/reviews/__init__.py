"""Reviews: people look at candidates, talk about their lines, and let them into the library."""
