"""Switchboard, a self-hosted WhatsApp orchestrator. The folders are the architecture."""

__version__ = "0.1.0"
