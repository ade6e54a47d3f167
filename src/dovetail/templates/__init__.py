"""Chat templates: rendering, differential analysis, and proofs that a dialect fits its template."""
