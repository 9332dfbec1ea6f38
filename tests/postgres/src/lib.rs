//! Only tests, in the folder beside this one.
