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
            import snapback:plugin/docker@0.1.0;
            include snapback:plugin/wasi-plugin@0.1.0;
        }
    ",
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_backend",
    default_bindings_module: "snapback_sdk::bindings",
});

/// What a backend may do beyond what every one does. Apart, since the world of a component
/// must have what it exports, and nothing else.
pub mod explains {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package snapback:explains;
            world explains {
                export snapback:plugin/explain@0.1.0;
            }
        ",
        with: {
            "snapback:plugin/types@0.1.0": crate::bindings::snapback::plugin::types,
            "snapback:plugin/store@0.1.0": crate::bindings::snapback::plugin::store,
            "wasi:io/error@0.2.12": crate::bindings::wasi::io::error,
            "wasi:io/poll@0.2.12": crate::bindings::wasi::io::poll,
            "wasi:io/streams@0.2.12": crate::bindings::wasi::io::streams,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_explain",
        default_bindings_module: "snapback_sdk::bindings::explains",
    });
}

/// The same for what goes with a snapshot.
pub mod releases {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package snapback:releases;
            world releases {
                export snapback:plugin/release@0.1.0;
            }
        ",
        with: {
            "snapback:plugin/types@0.1.0": crate::bindings::snapback::plugin::types,
            "snapback:plugin/store@0.1.0": crate::bindings::snapback::plugin::store,
            "wasi:io/error@0.2.12": crate::bindings::wasi::io::error,
            "wasi:io/poll@0.2.12": crate::bindings::wasi::io::poll,
            "wasi:io/streams@0.2.12": crate::bindings::wasi::io::streams,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_release",
        default_bindings_module: "snapback_sdk::bindings::releases",
    });
}

/// The same for proposals.
pub mod finds {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package snapback:finds;
            world finds {
                export snapback:plugin/finder@0.1.0;
            }
        ",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_find",
        default_bindings_module: "snapback_sdk::bindings::finds",
    });
}
