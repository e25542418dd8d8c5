"""Extenders: HTTP services that filter, score, spare victims and bind.

Nothing here speaks HTTP. A decision that needs an extender is set aside with a question
(`actions.AskExtender`), and goes on when the answer comes (`events.ExtenderAnswered`).
"""
