"""Web pages and books: HTML and EPUB."""
