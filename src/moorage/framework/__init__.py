"""The contract between the engine and its plugins: extension points, verdicts, profiles.

This package does not know what a plugin decides, or which plugins there are.
"""
