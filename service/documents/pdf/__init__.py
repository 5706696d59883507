"""The text of PDFs."""
