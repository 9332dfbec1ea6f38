//! The programs stand in the folders beside `src`; this library is empty.
