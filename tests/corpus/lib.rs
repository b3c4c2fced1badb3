//! Empty: this package only names what is fetched.
