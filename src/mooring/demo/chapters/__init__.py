"""One module per chapter: a title, what it is about in two lines, and what happens."""
