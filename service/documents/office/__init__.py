"""Word, PowerPoint, Excel and OpenDocument."""
