"""Alerts: what operators are told outside Paceline, by Telegram and other services. Runs inside the orchestrator.

Belongs here: following the incidents, and the channels that carry an alert out. Does not: which incidents alert, what
they say and when (`policy.alerts`), and the incidents themselves, which scripts write where things happen.
"""
