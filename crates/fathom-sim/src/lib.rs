//! Virtual time: an event heap and modelled devices behind the engine trait.
