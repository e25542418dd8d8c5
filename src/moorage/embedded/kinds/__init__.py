"""The kinds that are served: rules, columns and verbs of each kind together in one place."""
