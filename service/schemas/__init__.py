"""Requests and answers, shared by tasks and HTTP."""
