"""The plugins about volumes: which nodes have them, can reach them, and have room for more."""
