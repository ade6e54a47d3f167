"""How values, calls and turns are laid out, as data: what formats are made of and what readers follow."""
