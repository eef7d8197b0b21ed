"""Metrics as an operator meets them: real Prometheus, real promtool, the dashboard and the alert rules of deploy/."""
