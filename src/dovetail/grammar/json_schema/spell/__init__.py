"""How values are written: as JSON, as the markup of a model family, as literals of a call syntax."""
