//! Every range of places, and every split, of models whose places are known:
//! what the library predicts against what the generator planted, which shares
//! nothing with the rule by which the library places operations.

mod drawn;
mod planted;
