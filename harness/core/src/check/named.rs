//! Enums whose values have a name and a meaning.

/// Declares an enum with the name of each value, as reports and messages write it. The doc comment of a value is its
/// `meaning`.
macro_rules! named {
    (
        $(#[$of_the_enum:meta])*
        pub enum $name:ident { $($(#[doc = $line:literal])+ $value:ident = $text:literal,)+ }
    ) => {
        $(#[$of_the_enum])*
        pub enum $name {
            $($(#[doc = $line])+ $value,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$value),+];

            /// What it means, as a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $($name::$value => concat!($($line),+).trim_start(),)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(match self {
                    $($name::$value => $text,)+
                })
            }
        }
    };
}

pub(super) use named;
