"""Runs the alert rules of deploy/monitoring on made-up series, as promtool does."""
