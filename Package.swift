// swift-tools-version: 6.1

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
  name: "connect-swift-linux",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "Connect", targets: ["Connect"]),
    .library(name: "ConnectNIO", targets: ["ConnectNIO"]),
    .library(name: "ConnectProtobufC", targets: ["ConnectProtobufC"]),
  ],
  // Each needs a Debian package more: libbrotli-dev, libzstd-dev, libsnappy-dev.
  traits: [
    .trait(name: "Brotli", description: "BrotliCompressionPool, on libbrotli"),
    .trait(name: "Zstd", description: "ZstdCompressionPool, on libzstd"),
    .trait(name: "Snappy", description: "SnappyCompressionPool, on libsnappy"),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    // The loopback server of the tests and the demo speaks HTTP/2 with another engine than ours.
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
        "CNghttp2",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOTLS", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
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
      swiftSettings: swiftSettings
    ),

    // MARK: Demo
    .executableTarget(
      name: "Demo",
      dependencies: [
        "Connect",
        "ConnectNIO",
        "LoopbackServer",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),

    // MARK: Conformance
    .target(
      name: "ConformanceMessages",
      dependencies: [.product(name: "SwiftProtobuf", package: "swift-protobuf")],
      path: "Tests/ConformanceClient/Messages",
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "ConnectConformanceClient",
      dependencies: [
        "Connect",
        "ConnectNIO",
        "ConformanceMessages",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      path: "Tests/ConformanceClient",
      exclude: ["Messages", "config.yaml", "config-all.yaml"],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ConformanceClientTests",
      dependencies: [
        "ConnectConformanceClient",
        "ConformanceMessages",
        "LoopbackServer",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["Servers"],
      swiftSettings: swiftSettings
    ),

    // MARK: Tests
    .target(
      name: "LoopbackServer",
      dependencies: [
        "Connect",
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
      name: "ConnectTests",
      dependencies: [
        "Connect",
        "LoopbackServer",
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
        "ConnectNIO",
        "CNghttp2",
        "LoopbackServer",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "Connect",
        "ConnectNIO",
        "LoopbackServer",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      exclude: ["Servers"],
      swiftSettings: swiftSettings
    ),
    // What protoc-c makes of Protos/. All in one folder, which is the root of the #include lines.
    .target(
      name: "ProtobufCExamples",
      dependencies: ["CProtobufC"],
      path: "Tests/ProtobufCExamples",
      publicHeadersPath: "."
    ),
    .testTarget(
      name: "ConnectProtobufCTests",
      dependencies: [
        "Connect",
        "ConnectNIO",
        "ConnectProtobufC",
        "CProtobufC",
        "LoopbackServer",
        "ProtobufCExamples",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: swiftSettings
    ),
  ],
  swiftLanguageModes: [.v6]
)
