"""What a schema says: keywords read into constraints, references followed, negations written as schemas."""
