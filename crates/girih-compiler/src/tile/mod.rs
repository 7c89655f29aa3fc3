//! Tile IR: loop nests with placement, and the rules that place them.
