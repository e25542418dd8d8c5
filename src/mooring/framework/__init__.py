"""The contract between the engine and its plugins: extension points, verdicts, profiles.

What a plugin decides and which plugins there are is not known here.
"""
