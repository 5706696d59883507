"""Tables of plain text: CSV and TSV."""
