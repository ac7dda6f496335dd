// swift-tools-version: 6.1

import PackageDescription

// A package of its own, so that users of the libraries resolve none of these dependencies.
let package = Package(
  name: "benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "connect-swift-linux", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
    // The peer.
    .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.3"),
    .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.9.2"),
    .package(url: "https://github.com/grpc/grpc-swift-protobuf", from: "2.4.1"),
  ],
  targets: [
    .executableTarget(
      name: "CannedServer",
      cSettings: [.unsafeFlags(["-O2", "-Wall", "-Wextra"])],
      linkerSettings: [
        .linkedLibrary("nghttp2"), .linkedLibrary("z"), .linkedLibrary("ssl"), .linkedLibrary("crypto"),
        .linkedLibrary("ngtcp2"), .linkedLibrary("ngtcp2_crypto_gnutls"), .linkedLibrary("nghttp3"),
        .linkedLibrary("gnutls"),
      ]
    ),
    .target(name: "CAllocations"),
    .target(
      name: "Measuring",
      dependencies: [
        "CAllocations",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    .target(
      name: "BenchMessages",
      dependencies: [.product(name: "SwiftProtobuf", package: "swift-protobuf")]
    ),
    .target(
      name: "CBenchMessages",
      dependencies: [.product(name: "ConnectProtobufC", package: "connect-swift-linux")],
      publicHeadersPath: "."
    ),
    .executableTarget(
      name: "MessageBench",
      dependencies: [
        "Measuring",
        "BenchMessages",
        "CBenchMessages",
        .product(name: "Connect", package: "connect-swift-linux"),
        .product(name: "ConnectProtobufC", package: "connect-swift-linux"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ]
    ),
    .executableTarget(
      name: "ConnectBench",
      dependencies: [
        "Measuring",
        "BenchMessages",
        .product(name: "Connect", package: "connect-swift-linux"),
        .product(name: "ConnectChannels", package: "connect-swift-linux"),
        .product(name: "ConnectHTTP3", package: "connect-swift-linux"),
        .product(name: "ConnectInterceptors", package: "connect-swift-linux"),
        .product(name: "ConnectNIO", package: "connect-swift-linux"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]
    ),
    .executableTarget(
      name: "PickBench",
      dependencies: [
        "Measuring",
        .product(name: "ConnectChannels", package: "connect-swift-linux"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    .executableTarget(
      name: "GRPCSwiftBench",
      dependencies: [
        "Measuring",
        "BenchMessages",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "GRPCCore", package: "grpc-swift-2"),
        .product(name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport"),
        .product(name: "GRPCProtobuf", package: "grpc-swift-protobuf"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]
    ),
  ],
  swiftLanguageModes: [.v6]
)
