"""Formats of texts: HTML, XML and Markdown become passages; tags and marks go back around the aligned words."""
