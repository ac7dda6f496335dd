// swift-tools-version: 6.2

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("ExistentialAny"),
]

// What the plugins run; of swift-protobuf not its own plugin, and not its protoc, which is ten minutes of C++.
let generators: [Target.Dependency] = [
  .product(name: "protoc-gen-swift", package: "swift-protobuf"),
  "protoc-gen-connect-swift",
  "protoc-gen-connect-swift-mocks",
]

let package = Package(
  name: "connect-swift-linux",
  // Linux needs none. Nothing is tested on macOS, which would refuse the module Synchronization without this.
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Connect", targets: ["Connect"]),
    .library(name: "ConnectNIO", targets: ["ConnectNIO"]),
    .library(name: "ConnectInterceptors", targets: ["ConnectInterceptors"]),
    .library(name: "ConnectChannels", targets: ["ConnectChannels"]),
    .library(name: "ConnectConfiguration", targets: ["ConnectConfiguration"]),
    .library(name: "ConnectHTTP3", targets: ["ConnectHTTP3"]),
    .library(name: "ConnectLifecycle", targets: ["ConnectLifecycle"]),
    .library(name: "ConnectTesting", targets: ["ConnectTesting"]),
    .library(name: "ConnectSimulation", targets: ["ConnectSimulation"]),
    .executable(name: "protoc-gen-connect-swift", targets: ["protoc-gen-connect-swift"]),
    .executable(name: "protoc-gen-connect-swift-mocks", targets: ["protoc-gen-connect-swift-mocks"]),
    .plugin(name: "ConnectBuildPlugin", targets: ["ConnectBuildPlugin"]),
    .plugin(name: "ConnectCommandPlugin", targets: ["ConnectCommandPlugin"]),
    .library(name: "ConnectProtobufC", targets: ["ConnectProtobufC"]),
    .library(name: "ConnectReflection", targets: ["ConnectReflection"]),
    .library(name: "ConnectXDS", targets: ["ConnectXDS"]),
    .library(name: "ConnectSwiftCompatibility", targets: ["ConnectSwiftCompatibility"]),
  ],
  // Each but the last needs a Debian package more: libbrotli-dev, libzstd-dev, libsnappy-dev.
  traits: [
    .trait(name: "Brotli", description: "BrotliCompressionPool, on libbrotli"),
    .trait(name: "Zstd", description: "ZstdCompressionPool, on libzstd"),
    .trait(name: "Snappy", description: "SnappyCompressionPool, on libsnappy"),
    // So that nobody else resolves swift-configuration.
    .trait(name: "Configuration", description: "Settings from swift-configuration, in ConnectConfiguration"),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-service-context", from: "1.5.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    // Of reflection: it runs compilers of proto files.
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2", traits: []),
    .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
    // Of the trait Configuration. Without its own traits, but for JSON.
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
    // Of the command line.
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    // The proxy of the command line, and the loopback server of the tests and the demo: another engine than ours.
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
  ],
  targets: [
    // MARK: Libraries
    .target(
      name: "Connect",
      dependencies: [
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "NIOCore", package: "swift-nio"),
        "CZlib",
        .target(name: "CBrotli", condition: .when(traits: ["Brotli"])),
        .target(name: "CZstd", condition: .when(traits: ["Zstd"])),
        .target(name: "CSnappy", condition: .when(traits: ["Snappy"])),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),
    .systemLibrary(
      name: "CZlib",
      pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
    ),
    // Without pkgConfig, so that nobody is told of a library that is missing and not needed.
    .systemLibrary(name: "CBrotli"),
    .systemLibrary(name: "CZstd"),
    .systemLibrary(name: "CSnappy"),
    .systemLibrary(
      name: "CNghttp2",
      pkgConfig: "libnghttp2",
      providers: [.apt(["libnghttp2-dev"]), .brew(["libnghttp2"])]
    ),
    .target(
      name: "ConnectNIO",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "CNghttp2",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOTLS", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),
    // Without pkgConfig, as above: only who imports ConnectHTTP3 needs libngtcp2-dev, libngtcp2-crypto-gnutls-dev,
    // libnghttp3-dev and libgnutls28-dev.
    .systemLibrary(name: "CNgtcp2"),
    .systemLibrary(name: "CNghttp3"),
    .systemLibrary(name: "CGnuTLS"),
    .target(
      name: "ConnectHTTP3",
      dependencies: [
        "CGnuTLS",
        "CNghttp3",
        "CNgtcp2",
        "Connect",
        "ConnectChannels",
        "ConnectNIO",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "ConnectInterceptors",
      dependencies: [
        "Connect",
        "ConnectChannels",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceContextModule", package: "swift-service-context"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "ConnectChannels",
      dependencies: [
        "Connect",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "ConnectLifecycle",
      dependencies: [
        "ConnectNIO",
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "ConnectConfiguration",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectNIO",
        .product(
          name: "Configuration",
          package: "swift-configuration",
          condition: .when(traits: ["Configuration"])
        ),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "ConnectXDS",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectNIO",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "ConnectTesting",
      dependencies: [
        "Connect",
        "ConnectChannels",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),

    .target(
      name: "ConnectSimulation",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectInterceptors",
        "ConnectTesting",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),

    .systemLibrary(
      name: "CProtobufC",
      pkgConfig: "libprotobuf-c",
      providers: [.apt(["libprotobuf-c-dev"]), .brew(["protobuf-c"])]
    ),
    .target(
      name: "ConnectProtobufC",
      dependencies: [
        "Connect",
        "CProtobufC",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),

    .target(
      name: "ConnectReflection",
      dependencies: [
        "Connect",
        "ConnectProtobufC",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "Subprocess", package: "swift-subprocess"),
        .product(name: "SystemPackage", package: "swift-system", condition: .when(platforms: [.linux])),
      ],
      exclude: ["ARROWS"],
      swiftSettings: swiftSettings
    ),

    // The API of connect-swift 1.x, for those who come from there.
    .target(
      name: "ConnectSwiftCompatibility",
      dependencies: [
        "Connect",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),

    // MARK: The command line
    // Not in `products`: the packages that only the command line needs are then not resolved for users of the libraries.
    .executableTarget(
      name: "connectrpc",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectHTTP3",
        "ConnectInterceptors",
        "ConnectNIO",
        "ConnectProtobufC",
        "ConnectReflection",
        "ConnectSimulation",
        "ConnectTesting",
        "ConnectXDS",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOHPACK", package: "swift-nio-http2"),
        .product(name: "NIOHTTP2", package: "swift-nio-http2"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "NIOTLS", package: "swift-nio"),
      ],
      exclude: ["ARROWS", "install.sh"],
      swiftSettings: swiftSettings
    ),

    // MARK: Code generation
    .target(
      name: "ConnectCodegen",
      dependencies: [
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "SwiftProtobufPluginLibrary", package: "swift-protobuf"),
      ],
      path: "Codegen/Library",
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "protoc-gen-connect-swift",
      dependencies: ["ConnectCodegen"],
      path: "Codegen/protoc-gen-connect-swift",
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "protoc-gen-connect-swift-mocks",
      dependencies: ["ConnectCodegen"],
      path: "Codegen/protoc-gen-connect-swift-mocks",
      swiftSettings: swiftSettings
    ),

    .plugin(
      name: "ConnectBuildPlugin",
      capability: .buildTool(),
      dependencies: generators,
      path: "Codegen/Plugins/ConnectBuildPlugin"
    ),
    .plugin(
      name: "ConnectCommandPlugin",
      capability: .command(
        intent: .custom(verb: "generate-connect", description: "Generates Swift from proto files"),
        permissions: [.writeToPackageDirectory(reason: "To write the generated Swift files")]
      ),
      dependencies: generators,
      path: "Codegen/Plugins/ConnectCommandPlugin"
    ),
    // MARK: Demo
    .executableTarget(
      name: "Demo",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectInterceptors",
        "ConnectNIO",
        "ConnectProtobufC",
        "ConnectTesting",
        "ConnectXDS",
        "LoopbackServer",
        "ProtobufCExamples",
        "ProtobufCStubs",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),

    // MARK: Examples
    .target(
      name: "Eliza",
      dependencies: ["Connect", .product(name: "SwiftProtobuf", package: "swift-protobuf")],
      path: "Sources/Examples/Eliza",
      swiftSettings: swiftSettings
    ),
    // Without our settings, since who reads them has none.
    .executableTarget(
      name: "FirstCall",
      dependencies: ["Connect", "ConnectNIO", "Eliza"],
      path: "Sources/Examples/FirstCall"
    ),
    .executableTarget(
      name: "Conversation",
      dependencies: ["Connect", "ConnectNIO", "Eliza"],
      path: "Sources/Examples/Conversation"
    ),
    .executableTarget(
      name: "Production",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectInterceptors",
        "ConnectLifecycle",
        "ConnectNIO",
        "Eliza",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      path: "Sources/Examples/Production"
    ),

    // MARK: Conformance
    .target(
      name: "ConformanceMessages",
      dependencies: ["Connect", .product(name: "SwiftProtobuf", package: "swift-protobuf")],
      path: "Tests/ConformanceClient/Generated",
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "ConnectConformanceClient",
      dependencies: [
        "CThreadSanitizer",
        "Connect",
        "ConnectHTTP3",
        "ConnectNIO",
        "ConformanceMessages",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      path: "Tests/ConformanceClient",
      exclude: ["Generated", "config.yaml", "config-all.yaml"],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConformanceClientTests",
      dependencies: [
        "Connect",
        "ConnectConformanceClient",
        "ConformanceMessages",
        "LoopbackServer",
        "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["Servers"],
      swiftSettings: swiftSettings
    ),

    // MARK: Tests
    // What tests of several modules share.
    .target(
      name: "TestSupport",
      dependencies: ["Connect", "LoopbackServer"],
      path: "Tests/TestSupport",
      swiftSettings: swiftSettings
    ),
    .target(
      name: "LoopbackServer",
      dependencies: [
        "Connect",
        "ConnectTesting",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOTLS", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "NIOHTTP2", package: "swift-nio-http2"),
      ],
      path: "Tests/LoopbackServer",
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "CodegenTests",
      dependencies: [
        "ConnectCodegen",
        "LoopbackServer",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "SwiftProtobufPluginLibrary", package: "swift-protobuf"),
      ],
      exclude: ["Goldens", "Protos"],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectTests",
      dependencies: [
        "Connect",
        "ConnectTesting",
        "LoopbackServer",
        "TestSupport",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectNIOTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectNIO",
        "ConnectTesting",
        "CNghttp2",
        "LoopbackServer",
        "TestSupport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOTLS", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectHTTP3Tests",
      dependencies: [
        "CQUICPeer",
        "Connect",
        "ConnectChannels",
        "ConnectHTTP3",
        "ConnectInterceptors",
        "ConnectNIO",
        "LoopbackServer",
        "TestSupport",
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
      ],
      exclude: ["Servers"],
      swiftSettings: swiftSettings
    ),
    // A server's half of an HTTP/3 connection in C, without a socket.
    .target(
      name: "CQUICPeer",
      dependencies: ["CGnuTLS", "CNghttp3", "CNgtcp2"],
      path: "Tests/CQUICPeer"
    ),
    .testTarget(
      name: "ConnectXDSTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectHTTP3",
        "ConnectInterceptors",
        "ConnectNIO",
        "ConnectTesting",
        "ConnectXDS",
        "LoopbackServer",
        "TestSupport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["Servers"],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectConfigurationTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectConfiguration",
        "ConnectNIO",
        .product(
          name: "Configuration",
          package: "swift-configuration",
          condition: .when(traits: ["Configuration"])
        ),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectTestingTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectTesting",
        "LoopbackServer",
        "PlantedBugs",
        "TestSupport",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectSimulationTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectInterceptors",
        "ConnectSimulation",
        "ConnectTesting",
        "Exploration",
        "LoopbackServer",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "Exploration",
      dependencies: [
        "Connect", "ConnectChannels", "ConnectInterceptors", "ConnectSimulation", "ConnectTesting",
        "ConnectXDS",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      path: "Tests/Exploration",
      swiftSettings: swiftSettings
    ),
    .target(
      name: "PlantedBugs",
      dependencies: [
        "Connect",
        "ConnectInterceptors",
        "ConnectTesting",
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      path: "Tests/PlantedBugs",
      exclude: ["README.md"],
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "Explore",
      dependencies: ["ConnectSimulation", "ConnectTesting", "Exploration", "PlantedBugs"],
      path: "Tests/Explore",
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectInterceptorsTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectInterceptors",
        "ConnectNIO",
        "ConnectTesting",
        "LoopbackServer",
        "TestSupport",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "ServiceContextModule", package: "swift-service-context"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConnectChannelsTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectTesting",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: swiftSettings
    ),
    // Counts what the tests allocate. The benchmarks use it, too.
    .target(name: "CAllocations", path: "Tests/CAllocations"),
    // Shows thread sanitizer what mutexes and continuations do, in all tests, as these are one program.
    .target(
      name: "CThreadSanitizer",
      path: "Tests/ThreadSanitizer",
      exclude: ["README.md", "suppressions.txt"]
    ),
    // A service as a program of its own, which gets signals and an environment.
    .executableTarget(
      name: "ServiceProgram",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectLifecycle",
        "ConnectNIO",
        "LoopbackServer",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      path: "Tests/ServiceProgram",
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "CAllocations",
        "CThreadSanitizer",
        "Connect",
        "ConnectChannels",
        "ConnectInterceptors",
        "ConnectLifecycle",
        "ConnectNIO",
        "ConnectProtobufC",
        "ConnectReflection",
        "ConnectSimulation",
        "ConnectTesting",
        "Conversation",
        "FirstCall",
        "LoopbackServer",
        "Production",
        "ServiceProgram",
        "TestSupport",
        "connectrpc",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["Servers", "Sessions"],
      swiftSettings: swiftSettings
    ),
    // What protoc-c makes of Protos/. All in one folder, which is the root of the #include lines.
    .target(
      name: "ProtobufCExamples",
      dependencies: ["CProtobufC"],
      path: "Tests/ProtobufCExamples",
      publicHeadersPath: "."
    ),
    // What makes messages of those, and stubs with them.
    .target(
      name: "ProtobufCStubs",
      dependencies: ["Connect", "ConnectProtobufC", "ProtobufCExamples"],
      path: "Tests/ProtobufCStubs",
      swiftSettings: swiftSettings + [.treatAllWarnings(as: .error)]
    ),
    .testTarget(
      name: "ConnectProtobufCTests",
      dependencies: [
        "CAllocations",
        "Connect",
        "ConnectNIO",
        "ConnectProtobufC",
        "ConnectTesting",
        "CProtobufC",
        "LoopbackServer",
        "ProtobufCExamples",
        "ProtobufCStubs",
        "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),
    // The code of articles and doc comments, which `make generate` extracts, so that it is compiled, and what is a test runs.
    // Without our settings, as the examples.
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectHTTP3",
        "ConnectInterceptors",
        "ConnectLifecycle",
        "ConnectNIO",
        "ConnectProtobufC",
        "ConnectReflection",
        "ConnectSimulation",
        "ConnectSwiftCompatibility",
        "ConnectTesting",
        "ConnectXDS",
        "Eliza",
        "ProtobufCExamples",
        "ProtobufCStubs",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "ServiceContextModule", package: "swift-service-context"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
      ],
      exclude: ["Extracted/Cassettes"]
    ),
    .testTarget(
      name: "ConnectRPCTests",
      dependencies: [
        "Connect",
        "ConnectChannels",
        "ConnectInterceptors",
        "ConnectNIO",
        "LoopbackServer",
        "TestSupport",
        "connectrpc",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOHPACK", package: "swift-nio-http2"),
        .product(name: "NIOHTTP2", package: "swift-nio-http2"),
      ],
      swiftSettings: swiftSettings
    ),
    // An app as it was written for connect-swift. Without our settings, since such apps have none.
    .target(
      name: "ConnectSwiftExample",
      dependencies: [
        "ConnectSwiftCompatibility",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      path: "Tests/ConnectSwiftExample"
    ),
    .testTarget(
      name: "ConnectSwiftCompatibilityTests",
      dependencies: [
        "Connect",
        "ConnectNIO",
        "ConnectSwiftCompatibility",
        "ConnectSwiftExample",
        "ConnectTesting",
        "LoopbackServer",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ]
    ),
    .testTarget(
      name: "ConnectReflectionTests",
      dependencies: [
        "Connect",
        "ConnectNIO",
        "ConnectProtobufC",
        "ConnectReflection",
        "ConnectTesting",
        "LoopbackServer",
        "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["Protos"],
      swiftSettings: swiftSettings
    ),
  ],
  swiftLanguageModes: [.v6]
)

// The generated code of proto files that are as hard to generate from as can be; it must not even warn. It is not committed:
// `make check-generated` writes it to Tests/NastyProtos, and `make test` sets this variable when that is done.
if Context.environment["CONNECT_NASTY_PROTOS"] != nil {
  func generated(_ folder: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(
      name: "Nasty\(folder)",
      dependencies: dependencies,
      path: "Tests/NastyProtos/\(folder)",
      swiftSettings: swiftSettings + [.treatAllWarnings(as: .error)]
    )
  }
  let swiftProtobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
  package.targets += [
    generated("Types", [swiftProtobuf]),
    generated("Public", ["Connect", "ConnectTesting", "NastyTypes", swiftProtobuf]),
    generated("Internal", ["Connect", "ConnectTesting", "NastyTypes", swiftProtobuf]),
    generated("ConnectSwift", ["ConnectSwiftCompatibility", "NastyTypes", swiftProtobuf]),
    .target(
      name: "NastyStructs",
      dependencies: ["CProtobufC"],
      path: "Tests/NastyProtos/Structs",
      publicHeadersPath: "."
    ),
    generated("StructStubs", ["Connect", "ConnectProtobufC", "NastyStructs"]),
    .testTarget(
      name: "NastyProtoTests",
      dependencies: [
        "Connect",
        "ConnectProtobufC",
        "ConnectTesting",
        "NastyConnectSwift",
        "NastyInternal",
        "NastyPublic",
        "NastyStructStubs",
        "NastyStructs",
        swiftProtobuf,
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: swiftSettings
    ),
  ]
}

// The only test targets to build. `make sanitize` sets this variable, as it runs few of the tests.
if let kept = Context.environment["CONNECT_TESTS"]?.split(separator: " ") {
  package.targets.removeAll { target in target.type == .test && !kept.contains { $0 == target.name } }
}
