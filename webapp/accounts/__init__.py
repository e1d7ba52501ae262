"""Who is using the server: users, the local owner, sign-in links."""
