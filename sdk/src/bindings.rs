//! What `wit/` says, in Rust. Generated; the rest of the crate gives it a better face.

#![allow(unsafe_code, reason = "the border is crossed by pointer and length; the generator writes that")]
#![allow(missing_docs, clippy::all, reason = "generated")]

wit_bindgen::generate!({
    path: "../wit",
    inline: "
        package snapback:sdk;
        world everything {
            include snapback:plugin/tree-plugin@0.1.0;
            import snapback:plugin/sqlite@0.1.0;
            import snapback:plugin/file@0.1.0;
            import snapback:plugin/process@0.1.0;
            include snapback:plugin/wasi-plugin@0.1.0;
        }
    ",
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_backend",
    default_bindings_module: "snapback_sdk::bindings",
});
