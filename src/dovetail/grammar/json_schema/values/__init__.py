"""Values as nodes: characters, strings, numbers, and grammars that count or remember."""
