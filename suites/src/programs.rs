//! The subcommands of `ccm-conformance` that are programs in their own right.

use harness_cli::SubProgram;
use harness_component_testkit::components::image_credentials::{
    RECORDER, REGISTRY, recorder_main, registry_main,
};
use harness_component_testkit::components::network_proxy::tunnel;

/// All of these subcommands, whether the help lists them or not.
pub(crate) const PROGRAMS: &[SubProgram] = &[
    SubProgram {
        name: "fake-cloud",
        about: "Internal: the fake cloud, in memory, with vendors' APIs",
        shown: true,
        main: |arguments| fake_cloud::main(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-ccm",
        about: "Internal: the reference CCM, which passes every check",
        shown: true,
        main: |arguments| reference_ccm::program::reference(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-ccm-mutant",
        about: "The same CCM, able to be broken with '--mutant ID'; for 'controls'",
        shown: false,
        main: |arguments| reference_ccm::program::mutant(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-credential-provider",
        about: "Internal: the reference image credential provider",
        shown: true,
        main: |arguments| reference_credential_provider::reference(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-credential-provider-mutant",
        about: "The same plugin, able to be broken with '--mutant ID'; for 'controls'",
        shown: false,
        main: |arguments| reference_credential_provider::mutant(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-network-proxy",
        about: "Internal: the reference network proxy, server and agents",
        shown: true,
        main: |arguments| tunnel::reference_main(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-network-proxy-mutant",
        about: "The same proxy, able to be broken with REFERENCE_NETWORK_PROXY_MUTANT; for 'controls'",
        shown: false,
        main: |arguments| tunnel::mutant_main(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-csi-driver",
        about: "Internal: a CSI driver that stores nothing, under the names of clouds' drivers",
        shown: true,
        main: |arguments| reference_csi_driver::reference(arguments.into_iter()),
    },
    SubProgram {
        name: "reference-csi-driver-mutant",
        about: "The same driver, able to be broken with REFERENCE_CSI_DRIVER_MUTANT; for 'controls'",
        shown: false,
        main: |arguments| reference_csi_driver::mutant(arguments.into_iter()),
    },
    SubProgram {
        name: tunnel::PEER,
        about: "Internal: a Pod that an API server reaches through a proxy",
        shown: false,
        main: |arguments| tunnel::peer_main(arguments.into_iter()),
    },
    SubProgram {
        name: REGISTRY,
        about: "Internal: a registry that makes images on request",
        shown: false,
        main: registry_main,
    },
    SubProgram {
        name: RECORDER,
        about: "Internal: runs an image credential provider for a kubelet and records its calls",
        shown: false,
        main: recorder_main,
    },
];
