"""The HTTP side of the server: addresses, media types, streams. Objects are changed elsewhere."""
