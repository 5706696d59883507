"""Rows that corpora lack, made of their own by rewriting."""
