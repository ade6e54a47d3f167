"""Objects and arrays: what schemas say together about members and items, and what may follow what."""
