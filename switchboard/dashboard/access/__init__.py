"""Who may see the dashboard: from where a request comes, who it is, and with which headers an answer goes."""
