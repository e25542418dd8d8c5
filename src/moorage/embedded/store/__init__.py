"""Objects with their versions and history, in memory and on disk. It knows no kinds."""
